// The folder of a run.
//
//   runs/mnist/config.toml      the complete configuration
//              samples.json     what the network expects: shape, class names
//              metrics.jsonl    numbers for scripts; beside it event files for TensorBoard
//              curves.svg       the same as a picture
//              confusion.svg    the confusion matrix, if train.metrics asks for it
//              mistakes.png     of pictures: samples that got a wrong class, side by side
//              mistakes.json    and what they are
//              texts.jsonl      of a language model: what it wrote after each epoch
//              summary.json     how it ended, for scripts
//              failure.txt      the error that ended it, until it is resumed
//              table.json       of a table: how its columns become inputs
//              choices.txt      which kernel runs which shape
//              checkpoints/
//              lock             who writes here, or did last
//              live.json        what each worker was doing a second ago
//              workers.jsonl    where their time went (observe/live_history.h)
//              workers.json     while it is being trained: where its workers are found
//              trace.json       of `artel trace`: what they did in some steps, for Perfetto
//              trace_summary.json  and what that says; trace.request and trace.answer: who asks
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/file_lock.h"
#include "artel/data/dataset.h"
#include "artel/run/config.h"

namespace artel {

// Where the workers of a run are found while it is being trained.
struct RunWorkers {
  struct Worker {
    int number = 0;
    std::string host;
    int process = 0;
    std::string door;
  };
  std::string transport, token;
  bool encrypt = false;
  std::vector<Worker> workers;
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path samples() const { return path_ / "samples.json"; }
  std::filesystem::path tokenizer() const { return path_ / "tokenizer"; }  // of text
  std::filesystem::path table() const { return path_ / "table.json"; }     // what was learnt of one
  std::filesystem::path curves() const { return path_ / "curves.svg"; }
  std::filesystem::path confusion() const { return path_ / "confusion.svg"; }
  std::filesystem::path mistakes() const { return path_ / "mistakes.json"; }
  std::filesystem::path mistakes_picture() const { return path_ / "mistakes.png"; }
  std::filesystem::path texts() const { return path_ / "texts.jsonl"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path failure() const { return path_ / "failure.txt"; }
  std::filesystem::path choices() const { return path_ / "choices.txt"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path lock() const { return path_ / "lock"; }
  std::filesystem::path live() const { return path_ / "live.json"; }
  std::filesystem::path workers_history() const { return path_ / "workers.jsonl"; }
  std::filesystem::path workers() const { return path_ / "workers.json"; }
  std::filesystem::path trace() const { return path_ / "trace.json"; }
  std::filesystem::path trace_summary() const { return path_ / "trace_summary.json"; }
  std::filesystem::path trace_request() const { return path_ / "trace.request"; }
  std::filesystem::path trace_answer() const { return path_ / "trace.answer"; }

  // Whether the folder already holds a run.
  bool used() const;
  // What a run that is to be resumed says first; 0 steps: there was nothing to resume.
  std::string resume_note(int64_t step) const;

  // `fingerprint` tells whether the data is still the same.
  void save_layout(const data::SampleLayout& layout, const std::string& fingerprint = "") const;
  // Readable by the user alone, because of the token.
  void save_workers(const RunWorkers& workers) const;
  // Throws an Error of kind not_found if nobody trains the run, or corrupt.
  RunWorkers load_workers() const;
  // That of the data; empty if none was saved.
  std::string fingerprint() const;
  // Throws an Error of kind not_found or corrupt.
  data::SampleLayout load_layout() const;

 private:
  std::filesystem::path path_;
};

// The folder of the run that a path belongs to: the path itself, or the one above a checkpoint.
// Nothing if there is none.
std::optional<RunFolder> find_run(const std::filesystem::path& path);

struct FolderRequest {
  std::filesystem::path config;  // names the run if nothing else does
  std::string out;               // the folder itself
  std::string name;              // the folder is runs/NAME
  bool resume = false;
};

// The folder for a run. Throws if the requested one has been used and is not to be resumed. Without
// a request it is runs/STEM, or the first free one of runs/STEM-2, runs/STEM-3, ... (to resume: the
// last used one).
RunFolder choose_folder(const FolderRequest& request);

// A folder that this process alone writes to.
struct ClaimedFolder {
  RunFolder folder;
  bool is_new = false;             // it was created
  std::unique_ptr<FileLock> lock;  // null where the file system has no locks
  bool begun = false;              // there is something to keep, set by whoever writes it
};

// The folder for a run that is about to be written. Throws like choose_folder, if another process
// has claimed it (without a request: the next free one is taken), and if there is no run to resume.
ClaimedFolder claim_folder(const FolderRequest& request);
// The folder of a run whose writer has ended, or has been given up: it is told so when it saves.
ClaimedFolder take_over_folder(const RunFolder& folder);

}  // namespace artel
