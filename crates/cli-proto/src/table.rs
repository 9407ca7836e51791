//! Column output in the layout of `vcl.list` and `backend.list`.
//!
//! Each column is as wide as its widest cell; the last one is not padded. One to three blanks
//! follow the first column, as many as fit a line of 80; one more follows the others. A row that
//! begins with a blank is not part of the table and is left unchanged. Compat: measured with labels
//! of growing length in `vcl.list` of Varnish 7.1.

const WIDTH: usize = 80;

/// Lays out rows; `None` cells don't exist. Every row ends in a newline.
#[must_use]
pub fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    for row in rows.iter().filter(|row| !is_verbatim(row)) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let length = |row: &Vec<String>| row.iter().map(|cell| cell.chars().count() + 1).sum::<usize>().saturating_sub(1);
    let longest = rows.iter().filter(|row| !is_verbatim(row)).map(length).max().unwrap_or(0);
    let gap = (WIDTH.saturating_sub(longest) / columns.max(1)).clamp(1, 3);
    let mut out = String::new();
    for row in rows {
        if is_verbatim(row) {
            out.push_str(&row[0]);
            out.push('\n');
            continue;
        }
        for (index, cell) in row.iter().enumerate() {
            out.push_str(cell);
            if index + 1 < row.len() {
                let pad = widths[index].saturating_sub(cell.chars().count()) + gap + usize::from(index > 0);
                out.extend(std::iter::repeat_n(' ', pad));
            }
        }
        out.push('\n');
    }
    out
}

fn is_verbatim(row: &[String]) -> bool {
    row.len() == 1 && row[0].starts_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_lines_fit() {
        let rows = [row(&["active", "auto", "x"]), row(&["available", "label", "longer"]), row(&["  note here"])];
        assert_eq!(layout(&rows), "active      auto     x\navailable   label    longer\n  note here\n");
        assert_eq!(layout(&[]), "");
    }

    #[test]
    fn long_cells_close_the_gaps() {
        let check = |length: usize, expected_gap: usize| {
            let label = "x".repeat(length);
            let rows = [row(&["available", "label", "warm", "     -", &label, "->", "v4"])];
            let gap = " ".repeat(expected_gap);
            let expected = format!("available{gap}label {gap}warm {gap}     - {gap}{label} {gap}-> {gap}v4\n");
            assert_eq!(layout(&rows), expected);
        };
        check(25, 3);
        check(26, 2);
        check(32, 2);
        check(33, 1);
        check(200, 1);
    }
}
