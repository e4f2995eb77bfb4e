// Code points and their properties, as needed by tokenizers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artel::data::unicode {

// The code point at the front of UTF-8 text, and its length in bytes. A byte that does not start a
// valid sequence is kInvalid with length 1. `text` must not be empty.
constexpr uint32_t kInvalid = 0xFFFFFFFF;
struct CodePoint {
  uint32_t code;
  size_t bytes;
};
CodePoint first_code_point(std::string_view text);

bool is_valid(std::string_view text);

// Appends a valid code point as UTF-8.
void append_utf8(std::string& text, uint32_t code);

bool is_letter(uint32_t code);
bool is_number(uint32_t code);
bool is_punctuation(uint32_t code);  // by category
bool is_control(uint32_t code);
bool is_accent(uint32_t code);
bool is_space(uint32_t code);
bool is_chinese(uint32_t code);  // ideographs, which are single words

// Appends the code point in lower case without accents: canonically decomposed, without marks.
void append_folded(std::string& text, uint32_t code);

}  // namespace artel::data::unicode
