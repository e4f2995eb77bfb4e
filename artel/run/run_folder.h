// The folder of a run.
//
//   runs/mnist/config.toml      the complete configuration
//              samples.json     what the network expects: shape, class names
//              metrics.jsonl    numbers for scripts; beside it event files for TensorBoard
//              curves.svg       the same as a picture
//              summary.json     how it ended, for scripts
//              plan.txt         which kernel runs which shape
//              checkpoints/
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/run/config.h"

namespace artel {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path samples() const { return path_ / "samples.json"; }
  std::filesystem::path tokenizer() const { return path_ / "tokenizer"; }  // of text
  std::filesystem::path curves() const { return path_ / "curves.svg"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path plan() const { return path_ / "plan.txt"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  // Whether a run has been here.
  bool used() const;
  // What a run that is to be resumed says first; `unit` is "step" or "pass", of which 0 are done
  // where there was nothing to resume.
  std::string resume_note(const std::string& unit, int64_t done) const;

  void save_layout(const data::SampleLayout& layout) const;
  // Throws an Error of kind not_found or corrupt.
  data::SampleLayout load_layout() const;

 private:
  std::filesystem::path path_;
};

// The folder of the run that a path lies in: itself, or above a checkpoint. Nothing if there is
// none.
std::optional<RunFolder> find_run(const std::filesystem::path& path);

struct FolderRequest {
  std::filesystem::path config;  // names the run if nothing else does
  std::string out;               // the folder itself
  std::string name;              // the folder is runs/NAME
  bool resume = false;
};

// The folder for a run. Throws if the one asked for has been used and is not to be resumed; without
// a request it is runs/STEM, or the first free of runs/STEM-2, runs/STEM-3, ... (to resume: the
// last used one).
RunFolder choose_folder(const FolderRequest& request);

}  // namespace artel
