// Memory of `allocate`, or shared between processes, that is not needed for a while.
#pragma once

#include <cstddef>
#include <span>

namespace artel {

// The whole pages within.
std::span<std::byte> pages_in(std::span<std::byte> memory);
size_t page_bytes();

// Gives memory back to the system, page by page: whole pages within it are zeros from now on.
void forget(std::span<std::byte> memory);

// The same for memory that is not needed for long: what is written beside it takes no page in it,
// as it would where the system uses large pages.
void leave_out(std::span<std::byte> memory);

// Shared memory that this process does not need for a while: others keep it, and it is there again
// when it is read.
void look_away(std::span<std::byte> memory);

// Puts memory of this process alone, with zeros, in place of whole pages that others may share.
void make_empty(std::span<std::byte> pages);

// The same with what the pages contain. Whoever reads them meanwhile sees that, too.
void make_private(std::span<std::byte> pages);

}  // namespace artel
