#pragma once

#include <string>

namespace artel::observe {

// Whole words in lines of at most so many characters; each line ends with a line feed.
std::string wrapped(const std::string& text, int width);

}  // namespace artel::observe
