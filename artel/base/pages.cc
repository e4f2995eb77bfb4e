#include "artel/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace artel {
namespace {

void* map_anonymous(void* address, size_t bytes, int flags) {
  void* const memory = ::mmap(address, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::span<std::byte> pages_in(std::span<std::byte> memory) {
  const uintptr_t page = page_bytes();
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + memory.size()) / page * page;
  if (begin >= end) return {};
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

void forget(std::span<std::byte> memory) {
  const std::span<std::byte> pages = pages_in(memory);
  if (pages.empty()) return;
  // MADV_REMOVE releases shared memory for all processes; it fails for private memory.
  if (::madvise(pages.data(), pages.size(), MADV_REMOVE) != 0)
    ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

void leave_out(std::span<std::byte> memory) {
  const std::span<std::byte> pages = pages_in(memory);
  if (pages.empty()) return;
  ::madvise(pages.data(), pages.size(), MADV_NOHUGEPAGE);
  forget(pages);
}

void look_away(std::span<std::byte> memory) {
  const std::span<std::byte> pages = pages_in(memory);
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

void make_empty(std::span<std::byte> pages) {
  if (!pages.empty()) map_anonymous(pages.data(), pages.size(), MAP_FIXED);
}

// mremap replaces the pages by the copy in one step.
void make_private(std::span<std::byte> pages) {
  if (pages.empty()) return;
  void* const copy = map_anonymous(nullptr, pages.size(), 0);
  std::memcpy(copy, pages.data(), pages.size());
  if (::mremap(copy, pages.size(), pages.size(), MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) !=
      MAP_FAILED)
    return;
  ::munmap(copy, pages.size());
  throw std::bad_alloc();
}

}  // namespace artel
