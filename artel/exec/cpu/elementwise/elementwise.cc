#include "artel/exec/cpu/elementwise/elementwise.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "artel/base/error.h"
#include "artel/exec/cpu/elementwise/element_ops.h"

namespace artel::kernels {
namespace {

constexpr int64_t kCacheFloats = 6144;  // all registers of a block: three quarters of 32 KiB
constexpr int64_t kMaxBlock = 512;      // enough to hide the cost of an instruction
constexpr int kMaxRegisters = 256;
constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// A rectangle of rows x columns with strides <-> a dense buffer.
void gather(const float* from, int64_t row_stride, int64_t column_stride, int64_t rows,
            int64_t columns, float* buffer) {
  for (int64_t r = 0; r < rows; ++r, from += row_stride, buffer += columns) {
    if (column_stride == 1) {
      std::copy_n(from, columns, buffer);
    } else if (column_stride == 0) {
      std::fill_n(buffer, columns, *from);
    } else {
      for (int64_t c = 0; c < columns; ++c) buffer[c] = from[c * column_stride];
    }
  }
}

void scatter(const float* buffer, int64_t row_stride, int64_t column_stride, int64_t rows,
             int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r, to += row_stride, buffer += columns) {
    if (column_stride == 1) {
      std::copy_n(buffer, columns, to);
    } else {
      for (int64_t c = 0; c < columns; ++c) to[c * column_stride] = buffer[c];
    }
  }
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

void check(const ElementProgram& program, const std::vector<int64_t>& extents,
           const std::vector<ElementOperand>& inputs, const std::vector<ElementOperand>& outputs) {
  const auto registers = static_cast<int>(program.inputs + program.code.size());
  require(program.inputs == static_cast<int>(inputs.size()) &&
              program.outputs.size() == outputs.size() && registers <= kMaxRegisters,
          ErrorKind::internal,
          "[element-wise program] operands: got {} inputs, {} outputs and {} registers, expected "
          "{}, {} and at most {}",
          inputs.size(), outputs.size(), registers, program.inputs, program.outputs.size(),
          kMaxRegisters);
  for (size_t i = 0; i < program.code.size(); ++i) {
    const ElementInstruction& instruction = program.code[i];
    const std::array<int, 3> operands = {instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < operand_count(instruction); ++k) {
      require(operands[k] >= 0 && operands[k] < program.inputs + static_cast<int>(i),
              ErrorKind::internal,
              "[element-wise program] instruction {}: got register {}, expected an earlier one", i,
              operands[k]);
    }
  }
  for (const int reg : program.outputs) {
    require(reg >= 0 && reg < registers, ErrorKind::internal,
            "[element-wise program] output: got register {}, expected 0 to {}", reg, registers - 1);
  }
  for (const auto* operands : {&inputs, &outputs}) {
    for (const ElementOperand& operand : *operands) {
      require(operand.strides.size() == extents.size(), ErrorKind::internal,
              "[element-wise program] strides: got {}, expected {}", operand.strides.size(),
              extents.size());
    }
  }
  const bool empty = std::count(extents.begin(), extents.end(), 0) > 0;
  for (const ElementOperand& output : outputs) {
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      require(output.strides[axis] != 0 || extents[axis] == 1 || empty, ErrorKind::internal,
              "[element-wise program] output stride of axis {}: got 0, expected another", axis);
    }
  }
}

}  // namespace

ElementKernel::ElementKernel(ElementProgram program, std::vector<int64_t> extents,
                             std::vector<ElementOperand> inputs,
                             std::vector<ElementOperand> outputs)
    : program_(std::move(program)), extents_(std::move(extents)) {
  check(program_, extents_, inputs, outputs);
  for (ElementOperand& input : inputs) inputs_.push_back({std::move(input.strides), false, false});
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs_.push_back({program_.outputs[i], std::move(outputs[i].strides), false, false});
  merge_axes();
  assign_slots();
  choose_block();
}

// Orders the axes by the first output, drops those of extent 1 and joins neighbours that every
// operand walks as one.
void ElementKernel::merge_axes() {
  std::vector<std::vector<int64_t>*> operands;
  for (Input& input : inputs_) operands.push_back(&input.strides);
  for (Output& output : outputs_) operands.push_back(&output.strides);

  std::vector<size_t> order(extents_.size());
  std::iota(order.begin(), order.end(), 0);
  if (!outputs_.empty()) {
    const std::vector<int64_t> strides = outputs_[0].strides;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  }
  const std::vector<int64_t> old_extents = std::exchange(extents_, {});
  std::vector<std::vector<int64_t>> old_strides;
  for (auto* strides : operands) old_strides.push_back(std::exchange(*strides, {}));

  for (const size_t axis : order) {
    const int64_t extent = old_extents[axis];
    if (extent == 1) continue;
    bool joins = !extents_.empty();
    for (size_t k = 0; k < operands.size() && joins; ++k)
      joins = operands[k]->back() == old_strides[k][axis] * extent;
    if (joins) {
      extents_.back() *= extent;
      for (size_t k = 0; k < operands.size(); ++k) operands[k]->back() = old_strides[k][axis];
    } else {
      extents_.push_back(extent);
      for (size_t k = 0; k < operands.size(); ++k) operands[k]->push_back(old_strides[k][axis]);
    }
  }
  while (extents_.size() < 2) {
    extents_.insert(extents_.begin(), 1);
    for (auto* strides : operands) strides->insert(strides->begin(), 0);
  }
}

// Gives each register a buffer; a buffer is reused after the last read of its register. Inputs may
// stay in their buffers from block to block, so theirs are not reused.
void ElementKernel::assign_slots() {
  const int inputs = program_.inputs;
  const auto count = static_cast<int>(program_.code.size());
  std::vector<int> last_read(inputs + count, -1);
  int last_input_read = -1;
  for (int i = 0; i < count; ++i) {
    const ElementInstruction& instruction = program_.code[i];
    const std::array<int, 3> operands = {instruction.a, instruction.b, instruction.c};
    for (int k = 0; k < operand_count(instruction); ++k) {
      last_read[operands[k]] = i;
      if (operands[k] < inputs) last_input_read = i;
    }
  }
  for (const Output& output : outputs_) {
    last_read[output.reg] = count;
    if (output.reg < inputs) last_input_read = count;
  }
  // An output may be the memory of an input: written directly only when all inputs were read.
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const bool repeated = std::any_of(outputs_.begin(), outputs_.begin() + k,
                                      [&](const Output& o) { return o.reg == outputs_[k].reg; });
    outputs_[k].direct = outputs_[k].reg - inputs >= last_input_read && !repeated;
  }

  slots_.resize(inputs + count);
  std::iota(slots_.begin(), slots_.begin() + inputs, 0);
  slot_count_ = inputs;
  std::vector<int> free;
  for (int i = 0; i < count; ++i) {
    for (int reg = inputs; reg < inputs + i; ++reg)
      if (last_read[reg] == i) free.push_back(slots_[reg]);
    if (free.empty()) free.push_back(slot_count_++);
    slots_[inputs + i] = free.back();
    free.pop_back();
    if (last_read[inputs + i] < 0) free.push_back(slots_[inputs + i]);
  }
}

void ElementKernel::choose_block() {
  const int64_t fit = kCacheFloats / std::max(1, slot_count_) / kElementPad * kElementPad;
  const int64_t capacity = std::clamp(fit, kElementPad, kMaxBlock);
  const int64_t rows = extents_[extents_.size() - 2], columns = extents_.back();
  block_columns_ = std::min(columns, capacity);
  if (columns > 0 && columns < capacity) {
    block_rows_ = std::max<int64_t>(1, std::min(rows, capacity / columns));
    // Blocks of whole vectors need no copies of their operands.
    const int64_t even = kElementPad / std::gcd(columns, kElementPad);
    if (block_rows_ > even && block_rows_ < rows) block_rows_ -= block_rows_ % even;
  }
  const int64_t elements =
      std::accumulate(extents_.begin(), extents_.end(), int64_t{1}, std::multiplies<>());
  if (elements == 0) return;
  row_blocks_ = (rows + block_rows_ - 1) / block_rows_;
  column_blocks_ = (columns + block_columns_ - 1) / block_columns_;
  blocks_ = elements / (rows * columns) * row_blocks_ * column_blocks_;

  const auto dense = [&](const std::vector<int64_t>& strides) {
    return strides.back() == 1 && (block_rows_ == 1 || strides[strides.size() - 2] == columns);
  };
  for (Input& input : inputs_) {
    input.dense = dense(input.strides);
    bool same = row_blocks_ == 1 || input.strides[input.strides.size() - 2] == 0;
    same = same && (column_blocks_ == 1 || input.strides.back() == 0);
    for (size_t axis = 0; axis + 2 < extents_.size(); ++axis)
      same = same && input.strides[axis] == 0;
    input.invariant = same && !input.dense;
  }
  for (Output& output : outputs_) output.dense = dense(output.strides);
}

void ElementKernel::run(ThreadPool& pool, const float* const* inputs, float* const* outputs) const {
  const int64_t grain = std::max<int64_t>(1, kGrain / (block_rows_ * block_columns_));
  parallel_for(pool, blocks_, grain,
               [&](int64_t begin, int64_t end) { run_blocks(begin, end, inputs, outputs); });
}

void ElementKernel::run_blocks(int64_t begin, int64_t end, const float* const* inputs,
                               float* const* outputs) const {
  alignas(64) std::array<float, std::max<int64_t>(kCacheFloats, kMaxRegisters * kElementPad)> cache;
  const int64_t slot_size = round_up(block_rows_ * block_columns_, kElementPad);
  const size_t axes = extents_.size();
  std::array<float*, kMaxRegisters> registers;

  for (int64_t block = begin; block < end; ++block) {
    const int64_t column = block % column_blocks_ * block_columns_;
    const int64_t row = block / column_blocks_ % row_blocks_ * block_rows_;
    const int64_t outer = block / column_blocks_ / row_blocks_;
    const int64_t columns = std::min(block_columns_, extents_[axes - 1] - column);
    const int64_t rows = std::min(block_rows_, extents_[axes - 2] - row);
    const bool whole = rows * columns % kElementPad == 0;
    const auto offset = [&](const std::vector<int64_t>& strides) {
      int64_t result = column * strides[axes - 1] + row * strides[axes - 2];
      int64_t index = outer;
      for (size_t axis = axes - 2; axis-- > 0; index /= extents_[axis])
        result += index % extents_[axis] * strides[axis];
      return result;
    };

    for (size_t i = 0; i < slots_.size(); ++i) registers[i] = cache.data() + slots_[i] * slot_size;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      const float* from = inputs[i] + offset(input.strides);
      if (input.dense && whole) {
        registers[i] = const_cast<float*>(from);  // only read: instructions write other registers
      } else if (!input.invariant) {
        gather(from, input.strides[axes - 2], input.strides[axes - 1], rows, columns, registers[i]);
      } else if (block == begin) {
        gather(from, input.strides[axes - 2], input.strides[axes - 1], block_rows_, block_columns_,
               registers[i]);
      }
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Output& output = outputs_[k];
      if (output.direct && output.dense && whole)
        registers[output.reg] = outputs[k] + offset(output.strides);
    }
    run_instructions(program_.code.data(), static_cast<int>(program_.code.size()), program_.inputs,
                     registers.data(), rows * columns);
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Output& output = outputs_[k];
      if (output.direct && output.dense && whole) continue;
      scatter(registers[output.reg], output.strides[axes - 2], output.strides[axes - 1], rows,
              columns, outputs[k] + offset(output.strides));
    }
  }
}

}  // namespace artel::kernels
