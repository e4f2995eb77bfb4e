// Releases the pages of unused memory to the system. The memory comes from `allocate` or is shared
// between processes.
#pragma once

#include <cstddef>
#include <span>

namespace artel {

// The whole pages within `memory`; empty if it has none.
std::span<std::byte> pages_in(std::span<std::byte> memory);
size_t page_bytes();

// Returns the whole pages within `memory` to the system. They read as zeros from now on, also in
// processes that share them.
void forget(std::span<std::byte> memory);

// Like release_pages, for memory that stays unused for long. Also disables huge pages, so that
// writes to adjacent memory do not allocate pages in it again.
void leave_out(std::span<std::byte> memory);

// Unmaps the pages of shared memory from this process. Their content is kept by other processes and
// mapped again on the next access.
void look_away(std::span<std::byte> memory);

// Replaces whole pages, which may be shared, by private pages of zeros.
void make_empty(std::span<std::byte> pages);

// Replaces whole pages by private pages with the same content, atomically for concurrent readers.
void make_private(std::span<std::byte> pages);

}  // namespace artel
