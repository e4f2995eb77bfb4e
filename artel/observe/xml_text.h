// Escapes text for SVG.
#pragma once

#include <string>
#include <string_view>

namespace artel::observe {

// Replaces XML's special characters, and control characters (which XML forbids) by spaces.
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
