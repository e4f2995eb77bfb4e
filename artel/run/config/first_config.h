// Generates a commented configuration for the user's data: a table, a folder of pictures, a text,
// or arrays.
//
//   const artel::FirstConfig first = artel::first_config("houses.csv", {.target = "price"});
//   artel::write_file_atomically("houses.toml", first.toml);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace artel {

struct FirstConfigOptions {
  std::string target = {};  // column of a table; "" selects the last suitable one
  // Folder of the configuration. Its paths are relative to it.
  std::filesystem::path folder = ".";
};

struct FirstConfig {
  std::string toml;
  std::vector<std::string> findings;  // lines that describe the data and omitted columns
};

// Reads the data and chooses network, loss, metrics, and training settings for it. Throws an Error
// that lists the kinds of data if it recognises none.
FirstConfig first_config(const std::filesystem::path& data, const FirstConfigOptions& options = {});

}  // namespace artel
