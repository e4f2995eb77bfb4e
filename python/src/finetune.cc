// Fine-tuning: the configuration that adapts a base to given samples.
#include "artel/transfer/finetune.h"

#include "artel/cluster/launcher.h"
#include "data.h"
#include "interop.h"

namespace artel::python {
namespace {

// Returns the configuration as TOML, and lines that explain the choices; other workers than
// the first have none. `data` is as for `artel finetune`, or "given".
std::pair<std::string, std::vector<std::string>> finetuning(
    const std::string& base, const std::string& base_weights, const std::string& data,
    const data::DatasetPtr& train, const data::DatasetPtr& test,
    const std::shared_ptr<data::Table>& table, const std::shared_ptr<data::Table>& test_table,
    const std::optional<Array>& row_weights, const std::string& blocks, int64_t lora, bool new_head,
    int64_t outputs, const std::vector<std::string>& overrides) {
  const Tensor counts = row_weights ? borrowed(*row_weights) : Tensor();
  const nb::gil_scoped_release without_gil;
  const GivenDataScope scope(
      {.samples = {train, test}, .table = table, .test_table = test_table, .weights = counts});
  const transfer::Finetuning plan =
      transfer::plan_finetuning(transfer::open_base({.name = base, .weights = base_weights}), data,
                                {.train = blocks,
                                 .lora = lora,
                                 .new_head = new_head,
                                 .outputs = outputs,
                                 .overrides = overrides});
  return {to_toml(plan.config), speaks_for_the_run() ? plan.notes : std::vector<std::string>()};
}

}  // namespace

void add_finetuning(nb::module_& module) {
  const auto none = nb::none();
  module.def("finetuning", finetuning, nb::arg("base"), nb::arg("base_weights"), nb::arg("data"),
             nb::arg("train") = none, nb::arg("test") = none, nb::arg("table") = none,
             nb::arg("test_table") = none, nb::arg("row_weights") = none, nb::kw_only(),
             nb::arg("blocks") = "auto", nb::arg("lora") = 0, nb::arg("new_head") = false,
             nb::arg("outputs") = 0, nb::arg("overrides") = std::vector<std::string>());
}

}  // namespace artel::python
