// Base64 encoding (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace artel {

std::string base64(std::string_view bytes);

}  // namespace artel
