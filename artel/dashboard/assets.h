// The files of artel/dashboard/assets, embedded in the program.
#pragma once

#include <string_view>

namespace artel::dashboard {

// Empty for an unknown name.
std::string_view asset(std::string_view name);

}  // namespace artel::dashboard
