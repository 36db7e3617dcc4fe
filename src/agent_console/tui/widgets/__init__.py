"""The parts that screens are made of. Each is given what it shows; none asks for it."""
