"""Operations on results that are often denormal, in a second form that does not wait for them."""

# Stands among a module's declarations if one condition chooses between two forms of operations.
TWO_FORMS = "; Operations have two forms."
