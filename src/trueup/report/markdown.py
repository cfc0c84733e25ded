"""The report as Markdown: the same summary, for terminals, chats and repositories."""
