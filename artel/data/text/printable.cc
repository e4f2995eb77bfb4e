// GPT-2's printable alphabet: visible Latin-1 characters stand for themselves, the other bytes for
// the characters from U+0100 on.
#include <array>
#include <map>

#include "artel/base/error.h"
#include "artel/data/text/tokenizer.h"
#include "artel/data/text/unicode.h"

namespace artel::data {
namespace {

bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::vector<unsigned char> order;
  std::array<std::string, 256> text;       // by byte
  std::map<uint32_t, unsigned char> byte;  // by code point

  Alphabet() {
    for (const bool visible : {true, false})
      for (int byte = 0; byte < 256; ++byte)
        if (is_visible(byte) == visible) order.push_back(static_cast<unsigned char>(byte));
    uint32_t next = 0x100;
    for (const unsigned char b : order) {
      const uint32_t code = is_visible(b) ? b : next++;
      unicode::append_utf8(text[b], code);
      byte[code] = b;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

const std::vector<unsigned char>& printable_order() { return alphabet().order; }

std::string to_printable(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += alphabet().text[static_cast<unsigned char>(byte)];
  return text;
}

std::string from_printable(std::string_view text, std::string_view where) {
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [code, size] = unicode::first_code_point(rest);
    const auto found = alphabet().byte.find(code);
    require(found != alphabet().byte.end(), ErrorKind::corrupt,
            "[{}] token '{}': '{}' does not stand for a byte; expected GPT-2's alphabet", where,
            text, rest.substr(0, size));
    bytes += static_cast<char>(found->second);
    rest.remove_prefix(size);
  }
  return bytes;
}

}  // namespace artel::data
