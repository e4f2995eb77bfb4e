// The failure of a group as ranks tell it to each other.
#pragma once

#include <string>
#include <string_view>

#include "artel/base/error.h"

namespace artel::comm {

// Encodes a failure for Transport::abort. `worker` is the worker that failed, or "". `reporter` is
// the rank that noticed it: "2", or "2 on n03".
std::string failure_text(std::string_view worker, std::string_view cause,
                         std::string_view reporter);

// The error that a rank gets for such a text, or for one that a transport has made up by itself.
Error failure_error(ErrorKind kind, std::string_view text);

}  // namespace artel::comm
