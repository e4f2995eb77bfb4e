#include "artel/base/error.h"

namespace artel {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid argument";
    case ErrorKind::shape:
      return "shape";
    case ErrorKind::not_found:
      return "not found";
    case ErrorKind::io:
      return "input/output";
    case ErrorKind::corrupt:
      return "corrupt data";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::memory:
      return "memory";
    case ErrorKind::numeric:
      return "numeric";
    case ErrorKind::communication:
      return "communication";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::cancelled:
      return "cancelled";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(format, args));
}

}  // namespace artel
