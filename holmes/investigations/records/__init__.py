"""What is stored of incidents and investigations, and the database that holds it."""
