#include "artel/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "artel/base/synonyms.h"

namespace artel {
namespace {

// Edit distance: insertions, deletions, replacements, and swaps of neighbouring characters.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      rows[i][j] = std::min(
          {rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

// Longer names are not compared, because the time is quadratic in the length.
constexpr size_t kLongestName = 100;

}  // namespace

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || bytes >= 100 || bytes == static_cast<int64_t>(bytes);
  return whole ? fmt::format("{:.0f} {}", bytes, units[unit])
               : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string format_byte_range(double least, double most) {
  const std::string low = format_bytes(least), high = format_bytes(most);
  if (low == high) return high;
  const size_t unit = low.find(' ');
  const bool same = low.substr(unit) == high.substr(high.find(' '));
  return fmt::format("{} to {}", same ? low.substr(0, unit) : low, high);
}

std::string format_count(int64_t n) {
  std::string digits = fmt::format("{}", n);
  const int first = n < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) digits.insert(i, ",");
  return digits;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return "";
  for (const std::string& synonym : synonyms_of(name))
    if (std::ranges::find(candidates, synonym) != candidates.end()) return synonym;
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3 + 1);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty() || name.size() < 3) return best;
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(name); };
  const auto found = std::ranges::find_if(candidates, begins);
  return found == candidates.end() ? "" : *found;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string near = nearest_name(name, candidates);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

namespace {

// Length in bytes of a control character at the start of UTF-8 text; 0 if the text starts
// otherwise.
size_t control_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  // U+0080 to U+009F, which some terminals interpret, too.
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

std::string without_controls(std::string_view text, bool one_line) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = control_bytes(text);
    const bool layout = text[0] == '\n' || text[0] == '\t';
    if (layout && one_line)
      out += text[0] == '\n' ? "\\n" : "\\t";
    else if (bytes == 0 || layout)
      out += text[0];
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[bytes - 1]));
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return without_controls(text, false); }
std::string printable_line(std::string_view text) { return without_controls(text, true); }

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace artel
