// The files of artel/dashboard/assets, which are part of the program.
#pragma once

#include <string_view>

namespace artel::dashboard {

// Empty if there is none of that name.
std::string_view asset(std::string_view name);

}  // namespace artel::dashboard
