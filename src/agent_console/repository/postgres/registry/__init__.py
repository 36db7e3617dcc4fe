"""Who is here: agents, people, their credentials, and the storage they work on."""
