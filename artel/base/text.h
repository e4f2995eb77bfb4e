// Small helpers for text that people read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

// "512 B", "1.5 KiB", "16 MiB", "2.3 GiB".
std::string format_bytes(double bytes);

// "51.2 to 108 MiB", or "51.2 MiB" if both look the same.
std::string format_byte_range(double least, double most);

// "1,234,567".
std::string format_count(int64_t n);

// The candidate that `name` most likely means: another framework's word for it (base/synonyms.h),
// the closest one by edit distance, or one that begins with it. "" if none is close enough.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" for the nearest candidate, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Text for a terminal, which obeys control characters: all but line feeds and tabs are shown as
// "\u001b", which JSON understands, too. Names in files of others may contain any.
std::string printable(std::string_view text);
// The same in one line, with "\n" and "\t".
std::string printable_line(std::string_view text);

// One word of a command line, safe to paste into a shell.
std::string shell_word(std::string_view word);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace artel
