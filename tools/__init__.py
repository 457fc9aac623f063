"""What maintainers run: releases, oldest dependencies, pictures for the pages."""
