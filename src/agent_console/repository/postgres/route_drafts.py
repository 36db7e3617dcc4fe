"""What a draft of the policy would change, and the policy as one file."""
