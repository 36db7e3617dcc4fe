"""Which agent may ask which, the requests that wait for a person, and what was decided."""
