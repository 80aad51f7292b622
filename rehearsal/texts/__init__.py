"""Two small studies of texts of our own making: summaries of news, and answers to questions."""
