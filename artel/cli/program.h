// The `artel` program: one file of this folder for each command.
//
//   // A program with all commands of `artel`, and one more.
//   artel::cli::register_command({.name = "greet", .help = "Say hello", .run = [](auto words) {
//                                   artel::println("hello {}", words.at(0));
//                                   return 0;
//                                 }});
//   if (argc > 1) std::exit(artel::cli::run(argc, argv));
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/error.h"

namespace artel::cli {

struct Command {
  std::string name;
  std::string help;  // in one line
  // Called with the words after the name; returns the exit code. Its Errors are reported like those
  // of built-in commands.
  std::function<int(const std::vector<std::string>& words)> run = {};
};

// Registers a custom command. Replaces one that was registered earlier. Throws for a built-in name.
void register_command(Command command);

// Runs a command and returns the exit code: 0 for success; 1 for an error, reported as one line
// `artel: error: ...` on standard error; 2 for an invalid command line.
int run(int argc, char** argv);

// The error report of this process. Empty if another process of the same launcher reports it:
// workers that fail for the same reason report it once.
std::optional<std::string> report_of(const Error& error);

}  // namespace artel::cli
