"""Operations on results that are often denormal, written so that they do not wait."""
