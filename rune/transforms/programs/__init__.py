"""Programs of functions: making them, memos that live as long as they do, rules of equations."""
