// Bytes as letters, digits, '+' and '/' (RFC 4648), for where only text is allowed.
#pragma once

#include <string>
#include <string_view>

namespace artel {

std::string base64(std::string_view bytes);

}  // namespace artel
