/* A shared object that is no plugin. */
int unrelated(void);

int unrelated(void)
{
    return 0;
}
