"""The demo cluster: a small shop that is first healthy and then broken, and the script that records it."""
