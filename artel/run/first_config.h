// A commented first configuration for data that the user has: a table, a folder of pictures, a
// text, or arrays.
//
//   const artel::FirstConfig first = artel::first_config("houses.csv", {.target = "price"});
//   artel::write_file_atomically("houses.toml", first.toml);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace artel {

struct FirstConfigOptions {
  std::string target = {};  // column of a table; "": the last one that can be learnt
  // Folder of the configuration, which paths in it are relative to.
  std::filesystem::path folder = ".";
};

struct FirstConfig {
  std::string toml;
  std::vector<std::string> findings;  // one line each: what the data is, and what was left out
};

// Reads the data and chooses network, loss, metrics, and training settings for it. Throws an Error
// that lists the kinds of data if it recognises none.
FirstConfig first_config(const std::filesystem::path& data, const FirstConfigOptions& options = {});

}  // namespace artel
