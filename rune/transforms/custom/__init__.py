"""Rules of the user's in place of derivatives, and hidden arguments made explicit."""
