"""Programs: made of functions, remembered as long as they live, and held by equations."""
