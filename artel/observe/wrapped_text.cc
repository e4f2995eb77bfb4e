#include "artel/observe/wrapped_text.h"

#include "artel/base/text.h"

namespace artel::observe {

std::string wrapped(const std::string& text, int width) {
  std::string lines;
  int column = 0;
  for (const std::string& word : split(text, ' ')) {
    const int length = static_cast<int>(word.size());
    if (column > 0 && column + 1 + length > width) {
      lines += '\n';
      column = 0;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += length;
  }
  return lines + '\n';
}

}  // namespace artel::observe
