autocmd BufRead,BufNewFile *.impala setfiletype impala
