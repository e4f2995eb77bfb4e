// The folder of a run.
//
//   runs/mnist/config.toml      the complete configuration
//              identity.txt     the same in all folders of the run (run/folder/identity.h)
//              samples.json     what the network expects: shape, class names
//              metrics.jsonl    metrics for scripts; event files for TensorBoard are next to it
//              curves.svg       a plot of the metrics
//              confusion.svg    the confusion matrix, if selected in train.metrics
//              mistakes.png     for pictures: misclassified samples
//              mistakes.json    their numbers, classes, and answers
//              texts.jsonl      for language models: a text after each epoch
//              summary.json     the result, for scripts
//              failure.txt      the error that ended it, until it is resumed
//              table.json       for tables: the encoding of columns as inputs
//              choices.txt      the kernel chosen for each shape
//              checkpoints/
//              lock             the present or last writer
//              live.json        the activity of all workers, updated once a second
//              workers.jsonl    the time use of workers (observe/live_history.h)
//              workers.json     during training: the addresses of the workers
//              trace.json       a trace by `artel trace`, for Perfetto
//              trace_summary.json  its summary; trace.request and trace.answer: its requests
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/file_lock.h"
#include "artel/data/dataset.h"
#include "artel/run/config/config.h"

namespace artel {

// The addresses of a run's workers during training.
struct RunWorkers {
  struct Worker {
    int number = 0;
    std::string host;
    int process = 0;
    std::string door;
  };
  std::string transport, token;
  bool encrypt = false;
  std::string address;  // where workers that are started by hand meet; empty with a launcher
  std::vector<Worker> workers;
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path identity() const { return path_ / "identity.txt"; }
  std::filesystem::path samples() const { return path_ / "samples.json"; }
  std::filesystem::path tokenizer() const { return path_ / "tokenizer"; }  // of text
  std::filesystem::path table() const { return path_ / "table.json"; }     // encoder of a table
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

  // True if the folder already contains a run.
  bool used() const;
  // The first message of a resumed run. Step 0 means that no checkpoint existed.
  std::string resume_note(int64_t step) const;

  // `fingerprint` identifies the data.
  void save_layout(const data::SampleLayout& layout, const std::string& fingerprint = "") const;
  // Only the user can read the file, because it contains the token.
  void save_workers(const RunWorkers& workers) const;
  // Throws an Error of kind not_found if the run is not in progress, or corrupt.
  RunWorkers load_workers() const;
  // The saved fingerprint of the data; empty if none.
  std::string fingerprint() const;
  // Throws an Error of kind not_found or corrupt.
  data::SampleLayout load_layout() const;

 private:
  std::filesystem::path path_;
};

// The run folder of a path: the path itself, or the folder above a checkpoint. Empty if the path
// does not belong to a run.
std::optional<RunFolder> find_run(const std::filesystem::path& path);

struct FolderRequest {
  std::filesystem::path config;  // default name of the run
  std::string out;               // the folder itself
  std::string name;              // the folder is runs/NAME
  bool resume = false;
};

// Selects the folder of a run. Throws if the requested one has been used and is not resumed.
// Without a request, selects runs/STEM, or the first free one of runs/STEM-2, runs/STEM-3, ...; to
// resume, the last used one.
RunFolder choose_folder(const FolderRequest& request);

// A run folder claimed by this process.
struct ClaimedFolder {
  RunFolder folder;
  bool is_new = false;             // created by this process
  std::unique_ptr<FileLock> lock;  // null if the file system has no locks
  bool begun = false;              // set once the folder has content to keep
};

// Claims the folder of a run for writing. Throws like choose_folder, and if another process has
// claimed the requested folder (without a request, takes the next free one). A run to resume need
// not exist yet: it may be on another machine.
ClaimedFolder claim_folder(const FolderRequest& request);
// Throws an Error of kind not_found if the folder contains no run.
void require_run_to_resume(const RunFolder& folder);
// Takes over the folder of a run whose writer has ended or was removed. A removed writer learns
// this when it saves.
ClaimedFolder take_over_folder(const RunFolder& folder);

}  // namespace artel
