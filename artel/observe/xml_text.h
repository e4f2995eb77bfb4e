// Text inside of an SVG picture.
#pragma once

#include <string>
#include <string_view>

namespace artel::observe {

// With the characters that mean something to XML replaced, and spaces for control characters, which
// it does not allow.
inline std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result;
}

}  // namespace artel::observe
