#include "artel/tensor/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace artel {

namespace {

// The whole pages within.
std::span<std::byte> pages_in(std::span<std::byte> memory) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + memory.size()) / page * page;
  if (begin >= end) return {};
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

}  // namespace

void forget(std::span<std::byte> memory) {
  const std::span<std::byte> pages = pages_in(memory);
  if (pages.empty()) return;
  // Memory that processes share has to be given back for all of them; other memory has no such
  // call.
  if (::madvise(pages.data(), pages.size(), MADV_REMOVE) != 0)
    ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

void leave_out(std::span<std::byte> memory) {
  const std::span<std::byte> pages = pages_in(memory);
  if (pages.empty()) return;
  ::madvise(pages.data(), pages.size(), MADV_NOHUGEPAGE);
  forget(pages);
}

}  // namespace artel
