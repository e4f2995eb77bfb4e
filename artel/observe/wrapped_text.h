#pragma once

#include <string>

namespace artel::observe {

// Wraps text at word boundaries into lines of at most `width` characters. Each line ends with a
// line feed.
std::string wrapped(const std::string& text, int width);

}  // namespace artel::observe
