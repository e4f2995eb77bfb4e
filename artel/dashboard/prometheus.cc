// Prometheus gauges of runs and, during training, of their workers.
#include <fmt/format.h>

#include <map>

#include "artel/base/error.h"
#include "artel/dashboard/api.h"

namespace artel::dashboard {
namespace {

// Escapes a label value for Prometheus's text format.
std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return escaped;
}

// Groups the lines of each metric below its help text, as the format requires.
class Page {
 public:
  void add(const char* name, const char* help, const std::string& labels,
           std::optional<double> value) {
    if (!value) return;
    Metric& metric = metrics_[name];
    metric.help = help;
    metric.lines += fmt::format("{}{{{}}} {}\n", name, labels, *value);
  }
  std::string text() const {
    std::string text;
    for (const auto& [name, metric] : metrics_)
      text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", name, metric.help, metric.lines);
    return text;
  }

 private:
  struct Metric {
    std::string help, lines;
  };
  std::map<std::string, Metric> metrics_;
};

void add_worker(Page& page, const std::string& run, const observe::LiveWorker& worker) {
  const std::string labels = fmt::format("run=\"{}\",worker=\"{}\",host=\"{}\"", label(run),
                                         label(worker.name), label(worker.host));
  page.add("artel_worker_step", "Last finished step; of a server: pushes.", labels,
           static_cast<double>(worker.step));
  page.add("artel_worker_samples_per_second", "Samples that the worker computes.", labels,
           worker.samples_per_second);
  const auto share = [&](const char* part, const std::optional<double>& value) {
    page.add("artel_worker_time_share", "Share of the last seconds spent so, 0 to 1.",
             fmt::format("{},part=\"{}\"", labels, part), value);
  };
  share("computing", worker.computing);
  share("waiting_for_data", worker.data);
  share("waiting_for_workers", worker.workers);
  share("waiting_for_the_wire", worker.wire_wait);
  share("on_the_wire", worker.wire);
  page.add("artel_worker_sent_bytes_per_second", "To other workers and servers.", labels,
           worker.sent_per_second);
  page.add("artel_worker_received_bytes_per_second", "From other workers and servers.", labels,
           worker.received_per_second);
  page.add("artel_worker_cores_used", "Cores in use.", labels, worker.processor);
  page.add("artel_worker_memory_bytes", "Resident memory.", labels,
           static_cast<double>(worker.memory_bytes));
  page.add("artel_worker_device_busy", "Share of the last seconds with work in the device's queue.",
           labels, worker.device);
  if (worker.device_memory_bytes > 0)
    page.add("artel_worker_device_memory_bytes", "Memory allocated on the device.", labels,
             static_cast<double>(worker.device_memory_bytes));
  page.add("artel_worker_device_copied_bytes_per_second",
           "Bytes copied to and from the device per second.", labels,
           worker.device_copied_per_second);
  page.add("artel_worker_silent_seconds", "Since its last sign of life.", labels,
           worker.silent_seconds);
  if (worker.lanes > 0)
    page.add("artel_worker_lanes", "Lanes of a batch that it computes.", labels,
             static_cast<double>(worker.lanes));
  page.add("artel_server_staleness", "Updates that pushes missed, on average.", labels,
           worker.staleness);
}

void add_run(Page& page, Catalogue& catalogue, const Catalogue::Run& run) {
  const RunOverview& overview = run.overview;
  const std::string labels = fmt::format("run=\"{}\"", label(run.name));
  page.add("artel_run_info", "1, with the status of the run as a label.",
           fmt::format("{},status=\"{}\"", labels, to_string(overview.status)), 1);
  page.add("artel_run_step", "Finished steps.", labels, static_cast<double>(overview.step));
  page.add("artel_run_seconds", "Seconds of training.", labels, overview.seconds);
  page.add("artel_run_loss", "Training loss of the last step.", labels, overview.loss);
  page.add("artel_run_metric", "Last result on held-out data.",
           fmt::format("{},metric=\"{}\"", labels, label(overview.metric_name)), overview.metric);
  page.add("artel_run_bytes", "Size of the folder.", labels, static_cast<double>(overview.bytes));
  if (overview.status != RunStatus::running) return;
  const LiveView view = catalogue.live(run.name);
  if (!view.run) return;
  page.add("artel_run_samples_per_second", "Samples of all workers.", labels,
           view.run->samples_per_second);
  page.add("artel_run_seconds_left", "Expected time until the end.", labels,
           view.run->seconds_left);
  const auto known = [](double seconds) {
    return seconds > 0 ? std::optional(seconds) : std::nullopt;
  };
  page.add("artel_run_seconds_per_step", "Measured over the last seconds.", labels,
           known(view.run->seconds_per_step));
  page.add("artel_run_forecast_seconds_per_step",
           "Forecast with the speeds of artel plan --measure.", labels,
           known(view.run->forecast_seconds));
  page.add("artel_run_events", "Events among the last ones.", labels,
           static_cast<double>(view.run->events.size()));
  for (const observe::LiveWorker& worker : view.run->workers) add_worker(page, run.name, worker);
}

}  // namespace

std::string prometheus_text(Catalogue& catalogue) {
  Page page;
  for (const Catalogue::Run& run : catalogue.runs()) try {
      add_run(page, catalogue, run);
    } catch (const Error&) {
      // The run is being removed or written. The next scrape will find it.
    }
  return page.text();
}

}  // namespace artel::dashboard
