"""Programs: made from functions, with memos that live as long, and held by equations."""
