// Formatting of text for messages and terminals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

// "512 B", "1.5 KiB", "16 MiB", "2.3 GiB".
std::string format_bytes(double bytes);

// "51.2 to 108 MiB", or "51.2 MiB" if both round to the same text.
std::string format_byte_range(double least, double most);

// "1,234,567".
std::string format_count(int64_t n);

// The candidate that `name` most likely stands for: a synonym of another framework
// (base/synonyms.h), the closest one by edit distance, or one with `name` as its prefix. "" if none
// is close enough.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" for the nearest candidate, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Escapes control characters, except line feeds and tabs, as "\u001b". Use it for untrusted names
// that are printed to a terminal. The result is also valid inside JSON.
std::string printable(std::string_view text);
// Like printable, but also escapes line feeds and tabs.
std::string printable_line(std::string_view text);

// Quotes a word for the shell if needed.
std::string shell_word(std::string_view word);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace artel
