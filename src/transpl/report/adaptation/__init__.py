"""The sections of the page about one adaptation; `transpl.report.adaptation_page` puts them together."""
