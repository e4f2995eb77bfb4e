#include "artel/base/tar.h"

#include <filesystem>

#include "artel/base/text.h"

namespace artel {
namespace {

constexpr size_t kTarBlock = 512;

std::string_view until_zero(std::string_view field) { return field.substr(0, field.find('\0')); }

uint64_t octal(const ByteReader& reader, std::string_view field) {
  uint64_t value = 0;
  for (const char digit : trim(until_zero(field))) {
    reader.require(digit >= '0' && digit <= '7' && value >> 60 == 0,
                   "a number in a tar header is not octal");
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;
}

// The value of `path` in a pax header, whose records are "LENGTH KEY=VALUE\n"; "" if it has none.
std::string pax_path(std::string_view records) {
  const size_t at = records.find(" path=");
  if (at == std::string_view::npos) return "";
  const std::string_view value = records.substr(at + 6);
  return std::string(value.substr(0, value.find('\n')));
}

void check_name(const ByteReader& reader, const std::string& name) {
  const std::filesystem::path path(name);
  bool inside = !name.empty() && path.is_relative();
  for (const auto& part : path) inside = inside && part != "..";
  reader.require(inside, "the archive holds '{}', which leads out of its folder", name);
}

}  // namespace

std::vector<TarEntry> parse_tar(const Bytes& bytes) {
  ByteReader reader(bytes);
  std::vector<TarEntry> entries;
  std::string long_name;
  while (reader.left() >= kTarBlock) {
    const std::string_view header = reader.take_text(kTarBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) break;
    std::string name(until_zero(header.substr(0, 100)));
    const std::string_view prefix = until_zero(header.substr(345, 155));
    if (header.substr(257, 5) == "ustar" && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    const uint64_t size = octal(reader, header.substr(124, 12));
    const Bytes content = bytes.part(reader.offset(), size);
    reader.take(size);
    reader.take(std::min<uint64_t>(reader.left(), (kTarBlock - size % kTarBlock) % kTarBlock));
    const char kind = header[156];
    if (kind == 'x') {
      long_name = pax_path(content.text());
    } else if (kind == 'L') {
      long_name = until_zero(content.text());
    } else if (kind == '0' || kind == '\0') {
      if (!long_name.empty()) name = std::exchange(long_name, "");
      check_name(reader, name);
      entries.push_back({name, content});
    } else {
      long_name.clear();
      require(kind == '5' || kind == 'g', ErrorKind::unsupported,
              "[{}] offset {}: '{}' is neither a file nor a folder", bytes.name, reader.offset(),
              name);
    }
  }
  return entries;
}

}  // namespace artel
