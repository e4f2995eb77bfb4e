// What the terminal behind a stream can show.
#pragma once

#include <cstdio>

namespace artel::observe {

bool is_terminal(std::FILE* stream);
// By the user's locale.
bool speaks_unicode();
// In columns and lines; 80 by 24 if nobody knows.
int terminal_width(std::FILE* stream);
int terminal_height(std::FILE* stream);

}  // namespace artel::observe
