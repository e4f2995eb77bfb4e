// Machine files that come with Artel: artel/plan/machines/known/*.toml, compiled into the library.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace artel::plan {

struct KnownMachineFile {
  std::string_view name, text;
};

// Sorted by name. CMake generates the definition (cmake/embed_texts.cmake).
const std::vector<KnownMachineFile>& known_machine_files();

std::optional<std::string_view> known_machine_file(std::string_view name);

}  // namespace artel::plan
