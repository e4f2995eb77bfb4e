#include "artel/base/version.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "artel/base/error.h"

namespace artel {
namespace {

// Major and minor version: "0.2" for "0.2.7".
std::string_view first_two_numbers(std::string_view version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

// The build ID in a segment of notes; empty if there is none.
std::string build_id_in(const std::byte* note, const std::byte* end) {
  constexpr size_t kBytes = 8;
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const std::byte* const name = note + sizeof header;
    const std::byte* const bytes = name + padded(header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
      std::string text;
      for (size_t i = 0; i < std::min<size_t>(header.n_descsz, kBytes); ++i)
        text += fmt::format("{:02x}", std::to_integer<int>(bytes[i]));
      return text;
    }
    note = bytes + padded(header.n_descsz);
  }
  return {};
}

}  // namespace

std::string build_id() {
  std::string found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* result) {
        for (size_t i = 0; i < program->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = program->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE) continue;
          const auto* const begin =
              reinterpret_cast<const std::byte*>(program->dlpi_addr + segment.p_vaddr);
          auto& id = *static_cast<std::string*>(result);
          if (id.empty()) id = build_id_in(begin, begin + segment.p_memsz);
        }
        return 1;  // the first one is the program itself
      },
      &found);
  return found;
}

std::string_view library_version() { return kHeaderVersion; }

void check_headers(std::string_view version) {
  require(
      first_two_numbers(version) == first_two_numbers(kHeaderVersion), ErrorKind::unsupported,
      "[artel] headers: got version {}, expected {} like the library; compile the program again",
      version, kHeaderVersion);
}

}  // namespace artel
