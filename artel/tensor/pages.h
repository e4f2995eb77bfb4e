// Memory of `allocate`, or shared between processes, that is not needed for a while.
#pragma once

#include <cstddef>
#include <span>

namespace artel {

// Gives memory back to the system, page by page: whole pages within it are zeros from now on.
void forget(std::span<std::byte> memory);

// The same for memory that is not needed for long: what is written beside it takes no page in it,
// as it would where the system uses large pages.
void leave_out(std::span<std::byte> memory);

}  // namespace artel
