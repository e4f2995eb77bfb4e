// Capabilities of the terminal behind a stream.
#pragma once

#include <cstdio>

namespace artel::observe {

bool is_terminal(std::FILE* stream);
// Determined from the user's locale.
bool speaks_unicode();
// Size in columns and lines; 80 by 24 if unknown.
int terminal_width(std::FILE* stream);
int terminal_height(std::FILE* stream);

}  // namespace artel::observe
